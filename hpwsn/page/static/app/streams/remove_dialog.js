// Ends a service: stops the job that the node runs, or forgets one that runs elsewhere.
import { html } from "../html.js";
import { send } from "../api.js";
import { counted } from "../format.js";
import { Text } from "../parts/controls.js";
import { ask } from "../parts/dialogs.js";
import { toast } from "../parts/toasts.js";
import { servicePath } from "./one_service.js";
import { isAgents } from "./service_words.js";

/** Names the effect and removes the service; true if it was done. */
export async function askToRemove(item) {
  const agents = isAgents(item);
  const request = { method: "DELETE", path: servicePath(item.uri), node: item.at };
  const readers = item.requests?.total ?? 0;
  const again = `it is listed again ${item.state === "running" ? "with its next heartbeat" : "if it starts"}`;
  const effect = agents
    ? `Its job ends after the current batch. Its definition, checkpoint and log are removed: it cannot go on where it
      was.` : `The node forgets the service and its constraints. Its job is not stopped: ${again}.`;
  return Boolean(await ask({
    title: agents ? "Stop and remove a service" : "Forget a service",
    body: html`<p><b><${Text}>${item.uri}<//></b></p><p>${effect}</p>
      ${readers > 0 && html`<p>${counted(readers, "request")} on <${Text}>${item.topic}<//>
        ${" "}${agents ? "then get no new events from it" : "stay"}.</p>`}`,
    verb: agents ? "Stop and remove service" : "Forget service", danger: true, request,
    run: async () => {
      await send(request.method, request.path, { node: request.node });
      toast(agents ? "The service is stopped and removed" : "The service is forgotten");
      return true;
    },
  }));
}
