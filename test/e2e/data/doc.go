// Package data tests the data services of the built-in broker.
package data
