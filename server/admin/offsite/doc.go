// Package offsite makes backups of a daemon in storage away from its machine, as often
// as the configuration says, and removes those that are not kept.
package offsite
