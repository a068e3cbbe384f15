// Package backup makes backups of a data directory, while its daemon runs or
// not, verifies them, and makes data directories of them.
package backup
