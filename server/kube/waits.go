package kube

import (
	"strings"

	"cupola/runtime/pattern"
)

// pullSteps are what the kubelet and container runtimes say before the cause of a failed pull: what they were doing.
var pullSteps = pattern.Lazy(`(?:ErrImagePull|rpc error: code = \w+ desc =|Back-off pulling image "[^"]*"|failed to pull and unpack image "[^"]*"|failed to resolve (?:image|reference) "[^"]*"|failed to do request: \w+ "[^"]*"):? `)

// pulling are the reasons of a container that waits for its image.
var pulling = map[string]bool{"ErrImagePull": true, "ImagePullBackOff": true}

// waiting is why a container waits, whose image is of --kubernetes-registry if it is packed.
func waiting(reason, message, image string, packed bool) string {
	parts := []string{reason}
	if pulling[reason] {
		message = strings.TrimSuffix(pullSteps().ReplaceAllString(message+": ", ""), ": ")
		if !packed {
			parts = append(parts, "image "+image)
		}
	}
	if message != "" {
		parts = append(parts, message)
	}
	text := strings.Join(parts, ": ")
	if pulling[reason] && packed {
		registry, _, _ := strings.Cut(image, "/")
		text += "; nodes have to reach " + registry + ", the address of --kubernetes-registry, and to trust the CA that 'cupola trust --print' prints: see \"Droplets on a cluster\" in docs/kubernetes.md"
	}
	return text
}

// maxHold bounds what an event says of a pod that waits.
const maxHold = 400

// HoldOf is what a node waits for that has a pod and does not start it, by the pod's events, which are in order; "" if they do not tell.
func HoldOf(events []Object) (why string) {
	for _, e := range events {
		text := e.Text("message")
		switch reason := e.Text("reason"); {
		case reason == "FailedScheduling": // it has a node
		case e.Text("type") == "Warning":
			why = reason + ": " + text[:min(len(text), maxHold)]
		case reason == "Pulling":
			why = text
		case reason == "Pulled" || reason == "Created" || reason == "Started":
			why = ""
		}
	}
	return strings.ToValidUTF8(why, "")
}

// withoutNode is why the scheduler has no node for a pod, without what it says of preemption.
func withoutNode(reason, message string) string {
	for _, more := range []string{" no new claims to deallocate", " preemption: "} {
		message, _, _ = strings.Cut(message, more)
	}
	return strings.TrimSuffix(reason+": "+strings.TrimSuffix(message, "."), ": ")
}
