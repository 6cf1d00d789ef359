SPELLED = {"cast": "{0}.to({dtype})"}
