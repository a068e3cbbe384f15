// Package machine shows admins the machine that the daemon runs on: its load,
// memory, disk and pressure, the database and its backups, and what cupola doctor
// finds.
package machine
