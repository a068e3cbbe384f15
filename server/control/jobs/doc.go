// Package jobs works on the jobs that have more to do than one transaction, or
// wait for brokers: deletions, and manifests. It works in the turns of the users
// who asked for them.
package jobs
