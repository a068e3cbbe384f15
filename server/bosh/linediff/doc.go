// Package linediff shows in which lines two texts differ. It is pure.
package linediff
