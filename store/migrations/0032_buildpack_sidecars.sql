-- Processes also have the sidecars that the buildpacks of the app's droplet declare. Until now only the droplet had them.
-- A user's sidecar of the same name stays instead.
UPDATE processes SET sidecars = (
  SELECT json_group_array(json(s)) FROM (
    SELECT value s FROM json_each(processes.sidecars) WHERE type = 'object'
    UNION ALL
    SELECT json_set(j.value, '$.guid', substr(d.guid, 1, 34) || printf('%02x', j.key))
    FROM apps a JOIN droplets d ON d.guid = a.droplet_guid, json_each(d.sidecars) j
    WHERE a.guid = processes.app_guid AND j.type = 'object'
      AND EXISTS (SELECT 1 FROM json_each(j.value -> '$.process_types') t WHERE t.value = processes.type)
      AND NOT EXISTS (SELECT 1 FROM json_each(processes.sidecars) u WHERE u.type = 'object' AND u.value ->> 'name' = j.value ->> 'name')))
WHERE EXISTS (SELECT 1 FROM apps a JOIN droplets d ON d.guid = a.droplet_guid, json_each(d.sidecars) j WHERE a.guid = processes.app_guid AND j.type = 'object');
