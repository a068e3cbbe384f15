// Package backup tests backup, verify and restore, and copies of apps from one daemon to another.
package backup
