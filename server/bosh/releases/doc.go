// Package releases keeps the releases of BOSH that were uploaded.
package releases
