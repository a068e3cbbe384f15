// A form made from a JSON schema, as brokers give them for parameters; what the schema leaves open is written as JSON.
import { html, useState } from '../lib/html.js';
import { Field, Check } from './basic.js';

const typeOf = s => (Array.isArray(s.type) ? s.type.find(t => t !== 'null') : s.type) ?? (s.enum ? 'string' : undefined);

/** Whether a form shows all of a schema: an object whose properties have types. */
export function isForm(schema) {
  return (
    Boolean(schema?.properties) &&
    Object.keys(schema.properties).length > 0 &&
    Object.values(schema.properties).every(p => p && typeof p === 'object' && !p.$ref && typeOf(p))
  );
}

const isSecret = (name, s) => typeOf(s) === 'string' && /password|secret/i.test(name + (s.format ?? ''));

/** Parameters as a command line shows them: as JSON, with placeholders for those that are typed unseen. */
export function commandJSON(schema, object) {
  const shown = (of, value) =>
    value === null || typeof value !== 'object' || Array.isArray(value)
      ? value
      : Object.fromEntries(
          Object.entries(value).map(([name, v]) => {
            const s = of?.properties?.[name];
            return [name, s && isSecret(name, s) ? name.toUpperCase() : shown(s, v)];
          }),
        );
  return JSON.stringify(shown(schema, object));
}

/** What a schema gives by default. */
export function defaults(schema) {
  const out = {};
  for (const [name, s] of Object.entries(schema?.properties ?? {})) {
    if (s?.default !== undefined) out[name] = s.default;
    else if (s && typeOf(s) === 'object' && isForm(s)) {
      const inner = defaults(s);
      if (Object.keys(inner).length) out[name] = inner;
    }
  }
  return out;
}

/** Parameters: the form, or the JSON of the same object. value is {object} or {text, error}. */
export function Parameters({ schema, value, onValue, label = 'Parameters' }) {
  const form = isForm(schema);
  const [raw, setRaw] = useState(!form);
  const object = value.object ?? {};
  const toRaw = () => {
    onValue({ ...value, text: JSON.stringify(object, null, 2) });
    setRaw(true);
  };
  const write = text => {
    try {
      const parsed = text.trim() ? JSON.parse(text) : {};
      const bad = parsed === null || typeof parsed !== 'object' || Array.isArray(parsed);
      onValue({ text, object: bad ? object : parsed, error: bad ? 'Write a JSON object, like {"name": "value"}.' : null });
    } catch (e) {
      onValue({ text, object, error: e.message });
    }
  };
  return html`
    <fieldset class="schema">
      <legend class="legend">${label}</legend>
      ${raw
        ? html`
            <${Field}
              label="As JSON"
              as="textarea"
              rows="5"
              spellcheck=${false}
              value=${value.text ?? (Object.keys(object).length ? JSON.stringify(object, null, 2) : '')}
              onValue=${write}
              error=${value.error}
              note=${form ? undefined : (schema?.description ?? 'An object; the broker says what it takes. Empty: none.')}
              placeholder="{}"
            />
          `
        : html`<${Properties} schema=${schema} value=${object} onValue=${o => onValue({ object: o })} />`}
      ${form &&
      html`
        <button type="button" class="quiet" onClick=${() => (raw ? setRaw(false) : toRaw())} disabled=${Boolean(raw && value.error)}>
          ${raw ? 'Show the form' : 'Write JSON instead'}
        </button>
      `}
    </fieldset>
  `;
}

function Properties({ schema, value, onValue }) {
  const set = name => v => {
    const next = { ...value };
    if (v === undefined) delete next[name];
    else next[name] = v;
    onValue(next);
  };
  return html`
    <div class="schema-fields">
      ${Object.entries(schema.properties).map(
        ([name, s]) => html`
          <${Property}
            key=${name}
            name=${name}
            schema=${s}
            required=${(schema.required ?? []).includes(name)}
            value=${value?.[name]}
            onValue=${set(name)}
          />
        `,
      )}
    </div>
  `;
}

function Property({ name, schema: s, required, value, onValue }) {
  const label = (s.title || name) + (required ? ' (required)' : ''),
    note = [s.description, s.default !== undefined && `Default: ${JSON.stringify(s.default)}`].filter(Boolean).join(' ');
  const common = { label, note, required, 'data-parameter': name };
  const type = typeOf(s);
  if (s.enum) {
    return html`
      <${Field}
        ...${common}
        as="select"
        value=${value === undefined ? '' : JSON.stringify(value)}
        onValue=${v => onValue(v === '' ? undefined : JSON.parse(v))}
      >
        <option value="">${required ? 'Choose one' : 'None'}</option>
        ${s.enum.map(
          e => html`<option key=${JSON.stringify(e)} value=${JSON.stringify(e)}>${typeof e === 'string' ? e : JSON.stringify(e)}</option>`,
        )}
      <//>
    `;
  }
  if (type === 'boolean')
    return html`
      <div class="field">
        <${Check} label=${label} checked=${value === true} onValue=${onValue} data-parameter=${name} />
        ${note && html`<p class="note">${note}</p>`}
      </div>
    `;
  if (type === 'integer' || type === 'number') {
    return html`
      <${Field}
        ...${common}
        type="number"
        step=${s.multipleOf ?? (type === 'integer' ? 1 : 'any')}
        min=${s.minimum}
        max=${s.maximum}
        value=${value ?? ''}
        onValue=${v => onValue(v === '' ? undefined : Number(v))}
      />
    `;
  }
  if (type === 'string')
    return html`
      <${Field}
        ...${common}
        type=${isSecret(name, s) ? 'password' : 'text'}
        autocomplete="off"
        minlength=${s.minLength}
        maxlength=${s.maxLength}
        pattern=${s.pattern && unanchored(s.pattern)}
        value=${value ?? ''}
        onValue=${v => onValue(v === '' ? undefined : v)}
      />
    `;
  if (type === 'object' && isForm(s))
    return html`
      <fieldset class="schema">
        <legend class="legend">${label}</legend>
        ${note && html`<p class="note">${note}</p>`}
        <${Properties} schema=${s} value=${value ?? {}} onValue=${o => onValue(Object.keys(o).length ? o : undefined)} />
      </fieldset>
    `;
  return html`<${JSONProperty} ...${common} value=${value} onValue=${onValue} hint=${type} />`;
}

// JSON schema's patterns match anywhere, those of inputs the whole text.
const unanchored = p => `.*(?:${p}).*`;

function JSONProperty({ value, onValue, note, hint, ...rest }) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value));
  const [error, setError] = useState(null);
  const write = (t, input) => {
    setText(t);
    input.setCustomValidity('');
    try {
      onValue(t.trim() ? JSON.parse(t) : undefined);
      setError(null);
    } catch (e) {
      setError(e.message);
      input.setCustomValidity(e.message); // the form is not sent with it
    }
  };
  return html`
    <${Field}
      ...${rest}
      value=${text}
      onValue=${write}
      error=${error}
      note=${`${note} As JSON${hint === 'array' ? ', like ["a", "b"]' : ''}.`.trim()}
    />
  `;
}
