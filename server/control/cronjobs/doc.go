// Package cronjobs holds the verbs of jobs of apps, in the words of Cloud Foundry's scheduler:
// a job is a command of an app that runs as a task, by schedules, each a cron expression, or
// when a user asks for it. A call is the same with a POST request instead of a command. Loop
// starts the runs that are due and notes how they end.
//
// A job has one run at a time: one that is due while another goes on is skipped. Of the runs
// that were due while no daemon ran, the last is made up for, as Kubernetes' CronJob does; the
// others are skipped. Each leaves an execution, which is the job's history. A run, its task and
// the next due time are written in one transaction: a daemon that is killed loses none and
// repeats none. The request of a call is made after that, by the next daemon if this one ends
// before, and once: if the daemon ends while it is under way, the run has failed.
package cronjobs
