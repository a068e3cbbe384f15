-- What a build was staged from, as a fingerprint: a push that changes nothing takes the
-- droplet of the build before. Builds of earlier versions have none.
ALTER TABLE builds ADD COLUMN inputs TEXT NOT NULL DEFAULT '';
