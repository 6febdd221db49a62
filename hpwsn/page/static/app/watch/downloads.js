// Saves texts as files of the user.

const REPLACED = /[^\p{L}\p{N}._-]+/gu;

/** Saves a text, or the parts of one, as a file; what a file's name cannot have becomes `_`. */
export function saveText(name, text, type = "text/plain") {
  const url = URL.createObjectURL(new Blob(Array.isArray(text) ? text : [text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name.replace(REPLACED, "_").slice(-120);
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
