// Operations of operators: POST /v1/admin/NAME, whose answer is a line of JSON for each step, then the answer or an error.
import { call, APIError } from './api.js';

/**
 * Asks for an operation; answers null for an answer that says nothing. step gets {Step, Detail, Done, Total} while it is under way.
 * @param {string} name like stack/pull @param {object} [request]
 * @param {(step: object) => void} [step] @param {AbortSignal} [signal] ends the operation
 */
export async function operate(name, request = {}, step = () => {}, signal) {
  const answer = await call('POST', '/v1/admin/' + name, { json: request, whole: true, signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    rest += value ?? '';
    const lines = rest.split('\n');
    rest = lines.pop();
    for (const line of lines.filter(Boolean)) {
      const said = JSON.parse(line);
      if (said.Error) throw new APIError(422, said.Error);
      if (said.Done) return said.Answer ?? null;
      step(said.Step);
    }
    if (done) throw new APIError(502, 'The daemon ended before the operation did.');
  }
}

/** Whether a change is of one of the kinds. @param {string} kinds */
export const ofKind = kinds => {
  const set = new Set(kinds.split(' '));
  return change => set.has(change.kind);
};

/** A JSON body as a curl line shows it. */
export const curl = (method, path, json) =>
  `cf curl ${path.includes('?') ? `"${path}"` : path}${method === 'GET' ? '' : ' -X ' + method}` +
  `${json ? ` -d '${JSON.stringify(json).replaceAll("'", "'\\''")}'` : ''}`;
