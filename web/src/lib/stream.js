// The stream of events, as the worker reads it for all tabs, or a tab for itself.
// Browsers open six connections to a host at most: a stream for each tab would use
// them up.

/**
 * Opens the stream and keeps it open. send gets {message} with a message's text,
 * {lost: true} when the daemon does not answer, and {ended: true} with the session.
 * @param {string} base @param {(what: {message?: string, lost?: boolean, ended?: boolean}) => void} send
 */
export function openStream(base, send) {
  let source,
    last = '';
  const open = () => {
    source = new EventSource(base + '/events' + (last && '?after=' + encodeURIComponent(last)));
    source.onmessage = m => {
      last = m.lastEventId;
      send({ message: m.data });
    };
    source.onerror = () => {
      send({ lost: true });
      if (source.readyState === EventSource.CLOSED) setTimeout(again, 1000); // an answer that is no stream: the browser gives up
    };
  };
  const again = async () => {
    try {
      const answer = await fetch(base + '/api/userinfo', { credentials: 'same-origin' });
      if (answer.status === 401) return send({ ended: true });
    } catch {
      /* still down: the stream tries again */
    }
    open();
  };
  open();
  return () => source.close();
}
