// Package e2e drives the built daemon as a user does: it starts daemons, calls
// their API and pushes apps, and provides the registries, disks and networks
// that tests need. The packages below it are the tests, one for each area.
package e2e
