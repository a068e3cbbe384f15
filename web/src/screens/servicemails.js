// The mails that apps sent to an instance of the built-in broker's service smtp: listed, read and downloaded.
import { html } from '../lib/html.js';
import { get, call } from '../lib/api.js';
import { useResource, useEvery } from '../lib/resource.js';
import { base } from '../lib/router.js';
import { quoted, bytes } from '../lib/format.js';
import { save } from '../lib/save.js';
import { Time, Problem, Section, Skeleton, Lines } from '../parts/basic.js';
import { Table } from '../parts/table.js';
import { Sheet, open } from '../parts/dialog.js';
import { builtIn } from './servicebackups.js';

/** Whether the instances of an offering take mails. */
export const takesMails = offering => builtIn(offering) && offering.name === 'smtp';

const pathOf = (i, mail) => `/v1/service_instances/${i.guid}/mails${mail ? '/' + encodeURIComponent(mail.id) : ''}`;
const subjectOf = mail => mail.subject || '(no subject)';

/** The section of the screen; of is what the screen has loaded. */
export function Mails({ of }) {
  const { instance: i } = of;
  const all = useResource(signal => get(pathOf(i), { signal }), [i.guid]);
  useEvery(10_000, all.reload, [i.guid]); // no event tells of a mail
  const mails = all.data?.resources;
  const show = mail => () => open(Mail, { title: subjectOf(mail), i, mail, wide: true });
  const columns = [
    { title: 'Subject', cell: m => html`<button type="button" class="link" onClick=${show(m)}>${subjectOf(m)}</button>` },
    { title: 'From', cell: m => m.from || '–' },
    { title: 'To', cell: m => m.to.join(', ') },
    { title: 'Received', cell: m => html`<${Time} at=${m.received_at} />` },
    { title: 'Size', cell: m => bytes(m.size), num: true },
  ];
  return html`
    <${Section} title="Mails">
      <${Problem} error=${all.error} />
      ${mails &&
      (mails.length
        ? html`<${Table} caption="Mails" columns=${columns} rows=${mails} id=${m => m.id} />`
        : html`<p class="muted">Apps have sent no mails yet. What they send is kept here and not delivered.</p>`)}
      <${Lines} lines=${[`cupola services mails ${quoted(i.name)}`]} />
    <//>
  `;
}

// How much of a text is shown, in characters or bytes: a mail may have 10 MB.
const most = 256 << 10;

// Reads a mail as mail programs do. The parser is loaded when it is needed.
async function read(i, mail, signal) {
  const [answer, parser, text] = await Promise.all([
    call('GET', pathOf(i, mail), { whole: true, signal }),
    import('postal-mime'),
    import('postal-mime/text-format'),
  ]);
  const raw = await answer.arrayBuffer();
  const parsed = await parser.default.parse(raw);
  const htmlAlone = parsed.html && !parsed.text?.trim(); // some programs add an empty text
  const plain = htmlAlone ? text.htmlToText(parsed.html) : (parsed.text ?? '');
  return {
    ...parsed,
    htmlAlone,
    plain: plain.slice(0, most),
    source: new TextDecoder().decode(raw.slice(0, most)),
    cut: plain.length > most || raw.byteLength > most,
  };
}

const addresses = list =>
  list
    ?.flatMap(a => a.group ?? [a])
    .map(a => (a.name ? `${a.name} <${a.address}>` : a.address))
    .join(', ');

function Mail({ i, mail, close }) {
  const of = useResource(signal => read(i, mail, signal), [mail.id]);
  const m = of.data;
  return html`
    <${Sheet} title=${subjectOf(mail)} close=${close} lines=${[`cupola services mails ${quoted(i.name)} ${mail.id}`]}>
      <${Problem} error=${of.error} />
      ${m ? html`<${Content} m=${m} mail=${mail} />` : !of.error && html`<${Skeleton} rows=${4} />`}
      <p><a class="button" href=${`${base}/api${pathOf(i, mail)}`} download>Download</a></p>
    <//>
  `;
}

function Content({ m, mail }) {
  const facts = [
    ['From', addresses(m.from && [m.from]) || mail.from],
    ['To', addresses(m.to) || mail.to.join(', ')],
    ['Cc', addresses(m.cc)],
    ['Reply to', addresses(m.replyTo)],
    ['Sent to', mail.to.join(', ')],
  ].filter(([, value]) => value);
  return html`
    <dl class="facts">${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    ${m.htmlAlone && html`<p class="muted">This mail has HTML alone; this is its text.</p>`}
    <pre class="mail">${m.plain}</pre>
    ${m.attachments.length > 0 &&
    html`
      <h3>Attachments</h3>
      <ul>
        ${m.attachments.map((a, n) => html`<li key=${n}><${Attachment} of=${a} /></li>`)}
      </ul>
    `}
    <details><summary>Source</summary><pre class="mail">${m.source}</pre></details>
    ${m.cut && html`<p class="muted">It is longer than what is shown: download it.</p>`}
  `;
}

function Attachment({ of }) {
  const name = of.filename ?? 'attachment';
  return html`
    <button type="button" class="link" onClick=${() => save(name, [of.content])}>${name}</button>
    <span class="muted">${` ${of.mimeType}, ${bytes(of.content.byteLength)}`}</span>
  `;
}
