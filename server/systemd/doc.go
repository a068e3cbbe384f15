// Package systemd speaks what a service manager and a service say to each other
// (sd_notify(3), sd_listen_fds(3)): sockets that the manager holds, that the
// service is ready, ends, or is alive. Without such a manager all of it does
// nothing.
package systemd
