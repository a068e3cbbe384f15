// Package sshsession keeps which keys enter instances of deployments: the bosh CLI makes a
// key for each of its commands, and the director's API has it accepted until the command
// ends. Sessions are in memory alone: a restart of the daemon ends their connections, too.
package sshsession
