-- The apps that a label lets sleep are few among many, and looked for whenever one of them changes.
-- instr and not json_extract: labels that are damaged must not keep a row from being written, or the index from being made.
CREATE INDEX apps_sleep_after ON apps(id) WHERE instr(labels, '"cupola.dev/sleep-after"') > 0;
