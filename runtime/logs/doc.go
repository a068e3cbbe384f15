// Package logs reads what containers write to stdout and stderr. The two are
// FIFOs on the host, opened O_RDWR for the container, so that the container
// neither dies nor loses output when the daemon does; a Follower reads them,
// cuts them into lines and holds them to the instance's log rate limit.
package logs
