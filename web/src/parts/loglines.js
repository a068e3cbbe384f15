// The part of an app's log that belongs to a staging, a task or a failure, live, inside another screen.
import { html, useState, useEffect, useMemo } from '../lib/html.js';
import { Ring, follow } from '../lib/logs.js';
import { Problem } from './basic.js';
import { LogView } from './logview.js';

const nanoseconds = at => String(BigInt(new Date(at).getTime()) * 1000000n);

/**
 * @param {{app: {guid: string}, label: string, pass: (line: any) => boolean, since?: string, until?: string, limit?: number}} p
 * since and until bound the time; limit leaves only the last lines
 */
export function LogOf({ app, label, pass, since, until, limit }) {
  const ring = useMemo(() => new Ring(20000), [app.guid, since]);
  const [version, setVersion] = useState(0);
  const [error, setError] = useState(null);
  const [following, setFollowing] = useState(true);
  useEffect(() => {
    let timer = null;
    const end = follow(app.guid, {
      ring,
      at: since && nanoseconds(since),
      last: () => ring.lines.at(-1)?.stamp ?? null,
      lines: all => {
        ring.push(all);
        timer ??= setTimeout(() => {
          timer = null;
          setVersion(v => v + 1);
        }, 100);
      },
      state: (_, e) => setError(e ?? null),
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [ring]);
  const from = since ? new Date(since).getTime() - 1000 : 0,
    to = until ? new Date(until).getTime() + 1500 : Infinity;
  const all = ring.lines.filter(l => l.time >= from && l.time <= to && pass(l));
  const lines = limit ? all.slice(-limit) : all;
  return html`
    <div class="loglines">
      <${Problem} error=${error} />
      ${lines.length
        ? html`
            <${LogView}
              lines=${lines}
              version=${version}
              wrap=${true}
              relative=${false}
              follow=${following}
              onFollow=${setFollowing}
              mark=${null}
              at=${null}
              label=${label}
            />
          `
        : html`<p class="muted" role="status">No line yet. The log cache keeps the newest lines only.</p>`}
    </div>
  `;
}
