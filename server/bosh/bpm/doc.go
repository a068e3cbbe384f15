// Package bpm reads bpm.yml, the file in which a BOSH job says which processes
// it has and how each is contained, in the terms of bpm-release: its fields,
// checks, texts, defaults and byte sizes. It is pure.
package bpm
