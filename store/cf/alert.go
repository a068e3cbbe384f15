package cf

import "time"

// Alert is a condition that a rule found, of one subject, from when it was first seen.
type Alert struct {
	Resource
	Rule     string
	Subject  string // identifies what it is about: a GUID, a name or "" for the machine
	Name     string // of the subject, for people
	Severity AlertSeverity
	Text     string // what is wrong
	Mend     string // a command or advice; "" for none
	State    AlertState

	FiredAt     time.Time // zero: it has not fired
	ResolvedAt  time.Time // zero: it is not over
	AbsentSince time.Time // since when the condition is not seen any longer; zero: it is seen
	Announced   bool      // that it fires was handed to the targets
	Repeats     int       // how often that was repeated
	RepeatAt    time.Time // when it is repeated next; zero: never
}

// AlertState is how far an alert has got.
type AlertState string

// The states of an alert.
const (
	AlertPending  AlertState = "PENDING" // for less than the rule's duration
	AlertFiring   AlertState = "FIRING"
	AlertResolved AlertState = "RESOLVED"
)

// AlertSeverity says how bad it is.
type AlertSeverity string

// The severities.
const (
	AlertInfo     AlertSeverity = "info"
	AlertWarning  AlertSeverity = "warning"
	AlertCritical AlertSeverity = "critical"
)

// AlertTarget is where alerts are sent.
type AlertTarget struct {
	Resource
	Name         string
	Kind         string // one of the kinds below
	Settings     AlertSettings
	SentAt       time.Time // when it last took a message
	FailingSince time.Time // zero: it works, or was never tried
	Failure      string    // why the last message was not taken, without secrets
	Tries        int       // that failed, since it last worked
	TryAt        time.Time // no message goes out before
}

// The kinds of targets.
const (
	AlertWebhook = "webhook"
	AlertMail    = "mail"
	AlertCommand = "command"
)

// AlertSettings are what a target of some kind needs. They are sealed.
type AlertSettings struct {
	URL     string   `json:",omitempty"` // webhook
	Form    string   `json:",omitempty"` // webhook: json, slack or discord
	Server  string   `json:",omitempty"` // mail: host:port
	TLS     string   `json:",omitempty"` // mail: starttls, tls or none
	User    string   `json:",omitempty"` // mail
	Pass    string   `json:",omitempty"` // mail
	From    string   `json:",omitempty"` // mail
	To      []string `json:",omitempty"` // mail
	CA      string   `json:",omitempty"` // webhook and mail: trusted besides the machine's authorities, in PEM
	Command string   `json:",omitempty"` // command: for a shell
}

// AlertNotice is an event of an alert that a target has not taken yet.
type AlertNotice struct {
	Resource
	TargetGUID string
	Event      AlertEvent
}

// AlertEvent is what is said of an alert. Receivers may know it by its ID: an event that was sent
// when the daemon was killed is sent again.
type AlertEvent struct {
	ID       string        `json:"id"`
	Kind     string        `json:"event"` // firing, repeated, resolved or test
	Alert    string        `json:"alert"` // its GUID
	Rule     string        `json:"rule"`
	Severity AlertSeverity `json:"severity"`
	Name     string        `json:"subject"`
	Text     string        `json:"text"`
	Mend     string        `json:"mend,omitempty"`
	Since    time.Time     `json:"since"`
	At       time.Time     `json:"at"`
}

// The kinds of events.
const (
	AlertEventFiring   = "firing"
	AlertEventRepeated = "repeated"
	AlertEventResolved = "resolved"
	AlertEventTest     = "test"
)

// AlertSilence keeps alerts from being sent until it ends.
type AlertSilence struct {
	Resource
	Rule    string // "": any
	Name    string // of the subject, or the beginning of it up to a slash: "org/space"; "": any
	Comment string
	EndsAt  time.Time
}
