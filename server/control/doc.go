// Package control holds what the verbs of the control plane have in common: the
// session of an actor in a transaction, which says what the actor sees and may
// do. Each noun has a package below, whose functions change what users asked
// for. They check access, suspension and quotas, write audit events, and
// compose in one transaction; they know no HTTP. The API, background jobs and
// all other faces call the same ones.
//
// Imports point one way: access, audit ← control ← change, quota ← services ←
// apps, routes ← cronjobs ← manifests; orgs and apps do not know each other; deletion and then jobs know them all.
// server/layers_test.go holds them to it.
package control
