package desire

import "cupola/store/cf"

// Away reports whether a process sleeps without instances.
func Away(s *cf.Sleep, p *cf.Process, app *cf.App) bool {
	return Sleeps(s, p, app) && s.State == cf.SleepStopped
}

// Sleeps reports whether a process sleeps by its row; nil is none. It does not once it was
// started again or scaled.
func Sleeps(s *cf.Sleep, p *cf.Process, app *cf.App) bool {
	return s != nil && app.State == cf.Started && s.LRP == ProcessGUID(p, app) && s.Instances == p.Instances
}
