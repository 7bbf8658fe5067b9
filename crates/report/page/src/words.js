// Words and texts that several parts of the pages have.

/** Seconds. Cut and not rounded, as the times in sentences are. */
export const seconds = (ms) => (Math.floor(ms) / 1000).toFixed(3);

/** What the server answered instead, and what to do. */
export const failure = ({ message, hint }) => `${message}${hint ? `. ${hint}` : ""}`;

/** Sets a text if it is another one. */
export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}
