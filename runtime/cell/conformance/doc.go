// Package conformance tests what every cell does alike, whatever makes its containers: processes end, are stopped and
// are checked as Diego's are, and the same is said of them.
package conformance
