// Package script sends what the cf CLI sends, and runs the CLI where it is installed.
package script
