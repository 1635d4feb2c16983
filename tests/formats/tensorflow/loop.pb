
.
xPlaceholder*
dtype0*
shape:
$
enterEnterx*

frame_namef

mergeMergeenternext
!
goLessmergemerge*
T0

switchSwitchmergego

stepIdentityswitch:1

nextNextIterationstep

exitExitswitch"ó
