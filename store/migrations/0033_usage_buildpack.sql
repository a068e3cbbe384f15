-- Usage events name a droplet's buildpack as Cloud Controller does: the last one by its name among the admin's, or its URL.
-- Those of a process name the first buildpack with a URL, if there is one. Until now it was the name that the buildpack has for itself.
DROP VIEW process_usage;
DROP VIEW droplet_buildpack;
CREATE VIEW droplet_buildpack AS
  SELECT d.guid droplet_guid, coalesce(d.buildpacks ->> '$[#-1].name', '') name,
    (SELECT e.value ->> 'name' FROM json_each(d.buildpacks) e WHERE e.type = 'object' AND e.value ->> 'name' LIKE '%://%' ORDER BY e.key LIMIT 1) url,
    coalesce((SELECT p.guid FROM buildpacks p WHERE p.name = d.buildpacks ->> '$[#-1].name' ORDER BY p.stack = d.stack DESC LIMIT 1), '') guid
  FROM droplets d;
CREATE VIEW process_usage AS
  SELECT p.id id, p.guid process_guid, p.type process_type, p.instances, p.memory_mb, a.guid app_guid, a.name app_name, a.state,
    s.guid space_guid, s.name space_name, s.org_guid, coalesce(b.guid, '') buildpack_guid, coalesce(b.url, b.name, '') buildpack_name
  FROM processes p JOIN apps a ON a.guid = p.app_guid JOIN spaces s ON s.guid = a.space_guid LEFT JOIN droplet_buildpack b ON b.droplet_guid = a.droplet_guid;
