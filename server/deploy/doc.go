// Package deploy moves deployments on. world.step decides and is pure; Loop reads the
// rows, has step decide, and writes what it decided in one transaction, so that
// a daemon that is killed at any moment leaves a deployment that the next one
// goes on with. The rules are those of Cloud Controller's DeploymentUpdater.
package deploy
