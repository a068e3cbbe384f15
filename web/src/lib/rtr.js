// The router's access log: a line's parts.

const pattern = /^(\S+) - \[([^\]]+)\] "(\S+) (.*?) (HTTP\/[\d.]+)" (\d{3}|-) (\d+) (\d+) "(.*?)" "(.*?)" "([^"]*)" "([^"]*)"/;
const field = (text, name) => new RegExp(`${name}:"?([^" ]*)"?`).exec(text)?.[1] ?? '';

/**
 * The request of an RTR line, or null.
 * @param {string} text
 */
export function request(text) {
  const m = pattern.exec(text);
  if (!m) return null;
  return {
    host: m[1],
    at: m[2],
    method: m[3],
    path: m[4],
    status: m[6],
    received: Number(m[7]),
    sent: Number(m[8]),
    agent: m[10],
    client: m[11],
    backend: m[12],
    seconds: Number(field(text, 'response_time')),
    id: field(text, 'vcap_request_id'),
    index: field(text, 'app_index'),
    trace: field(text, 'x_b3_traceid'),
    error: field(text, 'x_cf_routererror'),
  };
}
