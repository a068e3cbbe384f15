// Package autoscaling scales the web process of apps by policies, in the words of Cloud Foundry's
// App Autoscaler: rules look at what is measured, and schedules change the limits for a time. It
// has the verbs of policies, and Loop, which measures and scales.
//
// A rule is met when all that was measured during its breach duration is beyond its threshold;
// then the app has another number of instances, within the limits, and rests for the rule's
// cool-down. The number, the cool-down and the entry of the history are written in one transaction:
// a daemon that is killed scales no app twice. What was measured is kept in memory, for two hours:
// after a restart a rule waits for its breach duration.
package autoscaling
