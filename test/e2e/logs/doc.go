// Package logs tests logs, drains and metrics.
package logs
