package main

type doctorCmd struct{ daemonFlags }

func (doctorCmd) Run(*env) error { return nil }

type stackCmd struct{}

func (stackCmd) Run(*env) error { return nil }
