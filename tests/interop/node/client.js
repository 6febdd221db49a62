// The npm soap client, as it comes, against a node: what a subscriber and a publisher do, over real sockets.
//
//   node client.js URL 1.1|1.2
//
// It knows nothing but the WSDL at URL?wsdl, and prints what it was told, one JSON object, for a test to judge.
'use strict';
const http = require('node:http');
const soap = require('soap');

const CONCRETE = 'http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete';
const XPATH = 'http://www.w3.org/TR/1999/REC-xpath-19991116';

// One client of the library, in one version of SOAP.
class Broker {
  constructor(url, version, client) {
    this.url = url;
    this.suffix = version === '1.2' ? 'Soap12' : 'Soap11';
    this.client = client;
  }

  static async at(url, version) {
    const client = await soap.createClientAsync(`${url}?wsdl`, { forceSoap12Headers: version === '1.2' });
    return new Broker(url, version, client);
  }

  call(portType, operation, request, address = this.url) {
    this.client.setEndpoint(address);
    const method = this.client.HPwsn[portType + this.suffix][operation];
    return new Promise((resolve, reject) =>
      method(request, (error, result) => (error ? reject(error) : resolve(result))));
  }

  // A fault as the library has decoded it.
  async refused(...call) {
    try {
      return { accepted: await this.call(...call) };
    } catch (error) {
      return { status: error.response.status, message: error.message, fault: error.root.Envelope.Body.Fault };
    }
  }
}

// A consumer on the library's own server, which finds a service by the path in the WSDL.
async function listen(wsdl, heard) {
  const server = http.createServer();
  const port = { Notify: (request) => { heard.push(...[request.NotificationMessage].flat()); } };
  const services = { HPwsn: { NotificationBrokerSoap11: port, NotificationBrokerSoap12: port } };
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  soap.listen(server, { path: '/wsn', services, xml: wsdl, oneWay: { emptyBody: true, responseCode: 202 } });
  return server;
}

const on = (name) => ({ attributes: { Dialect: CONCRETE }, $value: name });
const reading = (name, number) =>
  ({ Topic: on(name), Message: { $xml: `<r:reading xmlns:r="urn:example:r"><r:n>${number}</r:n></r:reading>` } });
const notify = (broker, name, ...numbers) => broker.call(
  'NotificationBroker', 'Notify', { NotificationMessage: numbers.map((number) => reading(name, number)) });

async function until(condition) {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10));
}

// Push: subscribe, hear, renew, pause, resume, unsubscribe.
async function push(broker, consumer, heard, found) {
  found.subscribe = await broker.call('NotificationBroker', 'Subscribe', {
    ConsumerReference: { Address: consumer },
    Filter: {
      TopicExpression: on('npm/hall'),
      MessageContent: { attributes: { Dialect: XPATH, 'xmlns:r': 'urn:example:r' }, $value: 'r:n < 100' },
    },
    InitialTerminationTime: 'PT1H',
  });
  const address = found.subscribe.SubscriptionReference.Address;
  const manage = (operation, request = {}) =>
    broker.call('PausableSubscriptionManager', operation, request, address);
  found.notify = await notify(broker, 'npm/hall', 1, 2, 100);
  await until(() => heard.length === 2);
  found.renew = await manage('Renew', { TerminationTime: 'PT2H' });
  found.pause = await manage('PauseSubscription');
  await notify(broker, 'npm/hall', 3);
  found.heardInPause = heard.length;
  found.resume = await manage('ResumeSubscription');
  await until(() => heard.length === 3);
  found.unsubscribe = await manage('Unsubscribe');
  found.unknown = await broker.refused('PausableSubscriptionManager', 'Unsubscribe', {}, address);
}

// Pull: a pull point, its messages, the current message of a topic.
async function pull(broker, found) {
  found.createPullPoint = await broker.call('CreatePullPoint', 'CreatePullPoint', {});
  const point = found.createPullPoint.PullPoint.Address;
  const made = await broker.call('NotificationBroker', 'Subscribe', {
    ConsumerReference: { Address: point }, Filter: { TopicExpression: on('npm/roof') },
  });
  await notify(broker, 'npm/roof', 7, 8, 9);
  found.getMessages = [
    await broker.call('PullPoint', 'GetMessages', { MaximumNumber: 2 }, point),
    await broker.call('PullPoint', 'GetMessages', { MaximumNumber: 2 }, point),
  ];
  found.getCurrentMessage = await broker.call('NotificationBroker', 'GetCurrentMessage', { Topic: on('npm/roof') });
  await resource(broker, made.SubscriptionReference.Address, found);
  found.destroyPullPoint = await broker.call('PullPoint', 'DestroyPullPoint', {}, point);
}

// Resources: the lifetime and the end of a subscription.
async function resource(broker, subscription, found) {
  found.setTerminationTime = await broker.call('ScheduledResourceTermination', 'SetTerminationTime',
    { RequestedTerminationTime: '2999-01-01T00:00:00Z' }, subscription);
  found.getResourceProperty = await broker.call('GetResourceProperty', 'GetResourceProperty',
    { $xml: 'wsnt:CreationTime' }, subscription);
  found.destroy = await broker.call('ImmediateResourceTermination', 'Destroy', {}, subscription);
}

async function refusals(broker, found) {
  const subscribe = (filter, more = {}) => broker.refused('NotificationBroker', 'Subscribe',
    { ConsumerReference: { Address: 'http://127.0.0.1:9/' }, Filter: filter, ...more });
  const several = { attributes: { Dialect: CONCRETE.replace('Concrete', 'Full') }, $value: 'npm/*' };
  found.faults = [
    await subscribe({ TopicExpression: { attributes: { Dialect: 'urn:none' }, $value: 'a' } }),
    await subscribe({ TopicExpression: on('a'), $xml: '<x:odd xmlns:x="urn:x"/>' }),
    await subscribe({ TopicExpression: on('a') }, { InitialTerminationTime: '2001-01-01T00:00:00Z' }),
    await broker.refused('NotificationBroker', 'GetCurrentMessage', { Topic: on('npm/silent') }),
    await broker.refused('NotificationBroker', 'GetCurrentMessage', { Topic: several }),
    await broker.refused('PullPoint', 'GetMessages', {}, `${broker.url}/pullpoints/none`),
  ];
}

async function main(url, version) {
  const broker = await Broker.at(url, version);
  const heard = [];
  const found = { heard };
  const server = await listen(await (await fetch(`${url}?wsdl`)).text(), heard);
  try {
    await push(broker, `http://127.0.0.1:${server.address().port}/wsn`, heard, found);
    await pull(broker, found);
    await refusals(broker, found);
  } finally {
    server.closeAllConnections();
    server.close();
  }
  console.log(JSON.stringify(found, null, 1));
}

main(...process.argv.slice(2)).catch((error) => {
  console.error(String(error.stack).slice(0, 2000));
  process.exit(1);
});
