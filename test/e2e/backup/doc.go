// Package backup tests backup, verify and restore.
package backup
