// Package link finds for every link that a job consumes the job that provides
// it, by BOSH's rules. It is pure.
package link
