-- The apps that a label lets sleep are few among many, and looked for whenever one of them changes.
CREATE INDEX apps_sleep_after ON apps(id) WHERE json_extract(labels, '$."cupola.dev/sleep-after"') IS NOT NULL;
