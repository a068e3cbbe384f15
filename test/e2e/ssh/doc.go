// Package ssh tests cf ssh.
package ssh
