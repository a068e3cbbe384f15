// Tables of resources: rows become cards on narrow screens; a filter as one types.
import { html, useState } from '../lib/html.js';
import { Problem, Skeleton } from './basic.js';

/**
 * A table. The first column heads its row. cell answers what a row has in a column.
 * @param {{caption: string, columns: Array<{title: string, cell: (row: any) => any, num?: boolean, quiet?: boolean}|false>,
 *   rows: any[], id?: (row: any) => string, kind?: string}} p
 */
export function Table({ caption, columns, rows, id = r => r.guid, kind }) {
  const shown = columns.filter(Boolean);
  return html`
    <div class=${'scroll ' + (kind ?? '')}>
      <table class="cards">
        <caption class="hidden">${caption}</caption>
        <thead>
          <tr>
            ${shown.map(
              c => html`
                <th key=${c.title} scope="col" class=${c.num && 'num'}>
                  ${c.quiet ? html`<span class="hidden">${c.title}</span>` : c.title}
                </th>
              `,
            )}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            r => html`
              <tr key=${id(r)} data-row>${shown.map((c, n) => html`<${Cell} key=${c.title} first=${n === 0} column=${c} row=${r} />`)}</tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

function Cell({ first, column, row }) {
  const content = column.cell(row);
  if (first) return html`<th scope="row">${content}</th>`;
  if (content === null || content === undefined || content === false || content === '') return html`<td></td>`;
  return html`
    <td class=${column.num ? 'num' : column.quiet && 'end'} data-label=${column.quiet ? undefined : column.title}>
      <div class="cell">${content}</div>
    </td>
  `;
}

/** A filter, and those rows whose text has all its words. @param {(row: any) => string} text */
export function useFilter(rows, text, label) {
  const [query, setQuery] = useState('');
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length
    ? rows?.filter(r => {
        const t = text(r).toLowerCase();
        return words.every(w => t.includes(w));
      })
    : rows;
  const input = html`
    <input
      type="search"
      aria-label=${label}
      placeholder=${label + '  ( / )'}
      value=${query}
      spellcheck=${false}
      autocomplete="off"
      onInput=${e => setQuery(e.currentTarget.value)}
    />
  `;
  return { found, input, query };
}

/** What a resource shows before it came, and why it did not come. */
export function Waiting({ of, rows, what }) {
  return html`<${Problem} error=${of.error} what=${what} />${!of.data && !of.error && html`<${Skeleton} rows=${rows} />`}`;
}
