// Package deploy advances deployments. world.step decides and is pure; Loop reads the
// rows, calls step, and writes its changes in one transaction, so that the next daemon
// continues a deployment after a kill at any moment. The rules are those of Cloud Controller's DeploymentUpdater.
package deploy
