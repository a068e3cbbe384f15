// Package chaos breaks the daemon in many ways while tenants work, and looks for what many cycles leave.
package chaos
