//go:build !linux

package thread

func first() bool { return false }
