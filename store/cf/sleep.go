package cf

import (
	"errors"
	"time"
)

// The labels of an app that say after which time without a request it sleeps, and after
// which further time its instances are stopped.
const (
	LabelSleepAfter     = "cupola.dev/sleep-after"
	LabelSleepStopAfter = "cupola.dev/sleep-stop-after"
)

// sleepOff is the value of such a label for never.
const sleepOff = "off"

// The times that such a label may have.
const (
	minSleep = time.Second
	maxSleep = 365 * 24 * time.Hour
)

// errSleep says what such a label may be.
var errSleep = errors.New("must be a time from 1s to 8760h, like 10m, or off")

// SleepTime is the time that a label says; 0 is never.
func SleepTime(value string) (time.Duration, error) {
	if value == sleepOff {
		return 0, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < minSleep || d > maxSleep {
		return 0, errSleep
	}
	return d, nil
}

// IsSleepTime reports whether a label is one whose value SleepTime reads.
func IsSleepTime(label string) bool {
	return label == LabelSleepAfter || label == LabelSleepStopAfter
}

// SleepTimes says when an app falls asleep.
type SleepTimes struct {
	After     time.Duration // without a request; 0: never
	StopAfter time.Duration // asleep; 0: never
}

// Of returns the times of an app with these labels; t are those of apps without.
func (t SleepTimes) Of(labels map[string]string) SleepTimes {
	for label, field := range map[string]*time.Duration{LabelSleepAfter: &t.After, LabelSleepStopAfter: &t.StopAfter} {
		if value, ok := labels[label]; ok {
			if d, err := SleepTime(value); err == nil { // an earlier version checked no label
				*field = d
			}
		}
	}
	return t
}

// SleepState is how an app sleeps.
type SleepState string

// The states of a Sleep.
const (
	SleepFrozen  SleepState = "frozen"  // its processes are stopped where they are
	SleepStopped SleepState = "stopped" // it has no instances
)

// Sleep is a process that sleeps.
type Sleep struct {
	ProcessGUID string
	AppGUID     string
	LRP         string // name of its LRP when it fell asleep; see Instances
	Instances   int    // that it had: with another LRP or number it does not sleep
	State       SleepState
	Since       time.Time
}
