//go:build !unix

package debian

import (
	"errors"
	"time"
)

func setTime(string, time.Time) error { return errors.ErrUnsupported }
