// Package database checks the database of a data directory, copies it daily, and
// puts a copy back.
package database
