package stackfile

import "testing"

// A small template, so that what the rules below rest on is seen to work.
func TestLoopsAndFunctionsAreResolved(t *testing.T) {
	got, err := Parse(`
Metadata: {List: &list [a, b]}
Parameters: {Size: {Default: 3}, Big: {Default: "yes"}}
Conditions: {IsBig: !Equals [!Ref Big, "yes"], IsSmall: !Not [!Equals [!Ref Big, "yes"]]}
Mappings: {M: {a: {N: 1}, b: {N: 2}}}
Resources:
  Fn::ForEach::Loop:
    - X
    - *list
    - "${X}Queue":
        Type: Q
        Properties:
          Name: !Sub "${AWS::StackName}-${X}-${Size}"
          N: !FindInMap [M, !Ref X, N]
          D: !FindInMap [M, !Ref X, Other, {DefaultValue: 7}]
          All: !Join [",", *list]
          Dead: {"Fn::GetAtt": [!Sub "${X}Dead", Arn]}
          If: !If [IsBig, !Ref Size, !Ref AWS::NoValue]
          Gone: !If [IsSmall, 1, !Ref AWS::NoValue]
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "map[All:a,b D:7 Dead:${bDead.Arn} If:3 N:2 Name:${AWS::StackName}-b-3]"
	if Text(got.Resources["bQueue"].Properties) != want || len(got.Resources) != 2 {
		t.Errorf("got %v\nwant bQueue to be %s, and aQueue", got.Resources, want)
	}
}
