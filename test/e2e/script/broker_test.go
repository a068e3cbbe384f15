package script

import (
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"cupola/server/osb/osbtest"
)

// commandBroker runs a service broker for the script, and tells it how to be:
//
//	broker start VARIABLE                   serves until the script ends; its URL
//	broker async POLLS                      takes so many polls; 0: does all at once
//	broker hold                             takes its time for all, until released
//	broker release                          finishes that, and does all at once
//	broker catalog FILE                     offers what the file says
//	broker fault METHOD KIND STATUS BODY    answers so (osbtest.Broker.Fault)
//	broker heal METHOD KIND                 answers as it should again
//	broker things                           prints what it has, and the requests so far
//	broker count                            prints how many things it has: "has 2"
func commandBroker(ts *testscript.TestScript, s *session, args []string) outcome {
	switch {
	case len(args) == 2 && args[0] == "start":
		s.broker = osbtest.New()
		ts.Defer(s.broker.Close)
		ts.Setenv(args[1], s.broker.URL)
	case s.broker == nil:
		ts.Fatalf("there is no broker: broker start VARIABLE")
	case len(args) == 2 && args[0] == "async":
		polls, err := strconv.Atoi(args[1])
		ts.Check(err)
		s.broker.SetAsync(polls > 0, polls)
	case len(args) == 1 && (args[0] == "hold" || args[0] == "release"):
		s.holdOperations(args[0] == "hold")
	case len(args) == 2 && args[0] == "catalog":
		text, err := os.ReadFile(ts.MkAbs(args[1]))
		ts.Check(err)
		s.broker.SetCatalog(string(text))
	case len(args) == 5 && args[0] == "fault":
		status, err := strconv.Atoi(args[3])
		ts.Check(err)
		s.broker.Fault(args[1], args[2], osbtest.Answer(status, args[4]))
	case len(args) == 3 && args[0] == "heal":
		s.broker.Fault(args[1], args[2], nil)
	case len(args) == 1 && args[0] == "things":
		return s.things()
	case len(args) == 1 && args[0] == "count":
		return outcome{stdout: "has " + strconv.Itoa(len(s.broker.Things())) + "\n"}
	default:
		ts.Fatalf("usage: broker start|async|hold|release|catalog|fault|heal|things|count …")
	}
	return outcome{}
}

// holdOperations lets what is asked of the broker take its time, or ends that.
func (s *session) holdOperations(on bool) {
	s.broker.SetAsync(on, 1)
	var poll http.HandlerFunc
	if on {
		poll = osbtest.Answer(http.StatusOK, `{"state": "in progress", "description": "still at it"}`)
	}
	s.broker.Fault("GET", "last_operation", poll)
}

func (s *session) things() outcome {
	var b strings.Builder
	for _, path := range s.broker.Things() {
		b.WriteString("has " + path + "\n")
	}
	for _, r := range s.broker.Requests() {
		b.WriteString("got " + r.Method + " " + r.Path + "\n")
	}
	return outcome{stdout: b.String()}
}
