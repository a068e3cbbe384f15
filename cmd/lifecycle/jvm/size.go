package jvm

import (
	"fmt"
	"strconv"
	"strings"
)

// size is an amount of memory in bytes.
type size int64

const (
	kibi size = 1 << 10
	mebi size = 1 << 20
)

// sizeForm is the pattern in the errors of Cloud Foundry's calculator.
const sizeForm = `^([\d]+)([bkmgtBKMGT]?)$`

// parseSize reads a number with a unit, as `512m`; without one it is bytes.
func parseSize(text string) (size, error) {
	text = strings.TrimSpace(text)
	digits, unit := text, 0
	if n := len(text) - 1; n >= 0 {
		if unit = strings.IndexByte("bkmgt", text[n]|0x20); unit >= 0 {
			digits = text[:n]
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || strings.HasPrefix(digits, "+") {
		return 0, fmt.Errorf("memory size does not match pattern '%s': %s", sizeForm, text)
	}
	return size(n) << (10 * max(unit, 0)), nil
}

// String is the size in the largest unit that divides it; below one kibibyte it is 0.
func (s size) String() string {
	n := s / kibi
	if n == 0 {
		return "0"
	}
	unit := 0
	for unit < 3 && n%1024 == 0 {
		n /= 1024
		unit++
	}
	return strconv.FormatInt(int64(n), 10) + string("KMGT"[unit])
}
