// Package apps holds the verbs of apps and of all that belongs to one: lifecycle,
// processes and sidecars, packages, builds and droplets, revisions, deployments,
// environment variables and features.
package apps
