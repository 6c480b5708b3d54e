package release

// Later is what the release that comes after this one changes, in tests of this one.
var Later = []Change{}
